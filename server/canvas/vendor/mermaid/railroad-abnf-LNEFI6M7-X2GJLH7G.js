import{a as r,b as o}from"./chunk-TROYSX22.js";import"./chunk-U2UIX2RL.js";import"./chunk-V4YQJPFT.js";export{r as RailroadAbnfModule,o as createRailroadAbnfServices};
