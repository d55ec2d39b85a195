import{a}from"../chunks/chunk-JAJR7OQI.js";export{a as sanitize};
