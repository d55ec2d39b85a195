import{a,b,c}from"../../chunks/chunk-7LBFS4JW.js";export{b as passage,a as passageOf,c as visibleRanges};
