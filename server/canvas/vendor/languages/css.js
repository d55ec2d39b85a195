import{b as a}from"../chunks/chunk-KZP5F6UA.js";import"../chunks/chunk-HINYIOYD.js";import"../chunks/chunk-I3Y4I7EJ.js";import"../chunks/chunk-VC46IEJQ.js";export{a as language};
