import{a as e,b as o}from"./chunk-Q2FCXLMP.js";import"./chunk-U2UIX2RL.js";import"./chunk-V4YQJPFT.js";export{e as EventModelingModule,o as createEventModelingServices};
