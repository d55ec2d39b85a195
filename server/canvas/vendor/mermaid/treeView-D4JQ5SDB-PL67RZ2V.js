import{a as e,b as r}from"./chunk-YSYF4BEK.js";import"./chunk-U2UIX2RL.js";import"./chunk-V4YQJPFT.js";export{e as TreeViewModule,r as createTreeViewServices};
