import{a as e,b as r}from"./chunk-7UK22HQJ.js";import"./chunk-U2UIX2RL.js";import"./chunk-V4YQJPFT.js";export{e as PacketModule,r as createPacketServices};
