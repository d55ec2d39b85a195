import{a as r,b as o}from"./chunk-J6AZW2NR.js";import"./chunk-U2UIX2RL.js";import"./chunk-V4YQJPFT.js";export{r as RailroadEbnfModule,o as createRailroadEbnfServices};
