import{b as a}from"../chunks/chunk-QGUKUJFO.js";import{Pb as o,db as e}from"../chunks/chunk-I3Y4I7EJ.js";import"../chunks/chunk-VC46IEJQ.js";var t=()=>new e(o.define(a));export{t as language};
