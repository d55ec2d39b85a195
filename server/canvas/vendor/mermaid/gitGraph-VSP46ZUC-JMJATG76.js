import{a as r,b as e}from"./chunk-S7LHXCKZ.js";import"./chunk-U2UIX2RL.js";import"./chunk-V4YQJPFT.js";export{r as GitGraphModule,e as createGitGraphServices};
