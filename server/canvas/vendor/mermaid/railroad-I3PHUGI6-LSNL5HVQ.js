import{a as r,b as o}from"./chunk-THXITLAJ.js";import"./chunk-U2UIX2RL.js";import"./chunk-V4YQJPFT.js";export{r as RailroadModule,o as createRailroadServices};
