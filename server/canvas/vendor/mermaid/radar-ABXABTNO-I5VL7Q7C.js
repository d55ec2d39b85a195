import{a as r,b as e}from"./chunk-BLDHNH5I.js";import"./chunk-U2UIX2RL.js";import"./chunk-V4YQJPFT.js";export{r as RadarModule,e as createRadarServices};
