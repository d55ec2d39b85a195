import{a as r}from"../chunks/chunk-QGUKUJFO.js";import{Pb as e,db as a}from"../chunks/chunk-I3Y4I7EJ.js";import"../chunks/chunk-VC46IEJQ.js";var n=()=>new a(e.define(r));export{n as language};
