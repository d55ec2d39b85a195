import{a,b,c,d,e,f,g}from"../../chunks/chunk-ZT4R2EWC.js";export{g as domRange,b as passage,a as passageOf,c as sourceRange,f as textOffset,d as visibleRanges,e as visibleStretch};
