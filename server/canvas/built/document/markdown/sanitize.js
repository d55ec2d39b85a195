import{a}from"../../chunks/chunk-XYC6ZPZV.js";export{a as sanitize};
