import{a,b,c}from"../../chunks/chunk-GATSG5LL.js";export{b as passage,a as passageOf,c as visibleRanges};
