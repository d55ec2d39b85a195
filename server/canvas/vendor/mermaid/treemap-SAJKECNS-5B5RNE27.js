import{a as e,b as r}from"./chunk-DLCWNXD2.js";import"./chunk-U2UIX2RL.js";import"./chunk-V4YQJPFT.js";export{e as TreemapModule,r as createTreemapServices};
