import{a as e,b as r}from"./chunk-VY5GZ5AO.js";import"./chunk-U2UIX2RL.js";import"./chunk-V4YQJPFT.js";export{e as CynefinModule,r as createCynefinServices};
