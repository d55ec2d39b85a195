import{a}from"../chunks/chunk-OBXR4AL4.js";export{a as sanitize};
