import{a}from"../chunks/chunk-MAUH7FYM.js";export{a as sanitize};
