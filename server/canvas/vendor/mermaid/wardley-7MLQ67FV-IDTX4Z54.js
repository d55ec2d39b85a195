import{a as e,b as r}from"./chunk-EHAAQXEA.js";import"./chunk-U2UIX2RL.js";import"./chunk-V4YQJPFT.js";export{e as WardleyModule,r as createWardleyServices};
