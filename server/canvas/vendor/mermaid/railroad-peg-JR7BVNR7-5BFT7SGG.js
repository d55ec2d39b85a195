import{a as e,b as r}from"./chunk-GEQTN4R7.js";import"./chunk-U2UIX2RL.js";import"./chunk-V4YQJPFT.js";export{e as RailroadPegModule,r as createRailroadPegServices};
