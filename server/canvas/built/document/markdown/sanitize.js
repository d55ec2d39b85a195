import{a}from"../../chunks/chunk-CQU2QPAZ.js";export{a as sanitize};
