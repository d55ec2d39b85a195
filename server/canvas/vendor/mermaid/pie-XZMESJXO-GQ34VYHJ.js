import{a as e,b as r}from"./chunk-CBGAFNOQ.js";import"./chunk-U2UIX2RL.js";import"./chunk-V4YQJPFT.js";export{e as PieModule,r as createPieServices};
