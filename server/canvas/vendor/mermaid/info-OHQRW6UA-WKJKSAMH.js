import{a as o,b as e}from"./chunk-DYNDYING.js";import"./chunk-U2UIX2RL.js";import"./chunk-V4YQJPFT.js";export{o as InfoModule,e as createInfoServices};
