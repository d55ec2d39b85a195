import{a}from"../../chunks/chunk-JU2VEMVJ.js";export{a as sanitize};
