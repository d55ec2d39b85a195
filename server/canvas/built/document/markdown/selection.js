import{a,b,c}from"../../chunks/chunk-FQQ3SJRT.js";export{b as passage,a as passageOf,c as visibleRanges};
