import{a as o,b as m}from"./chunk-UEIZND2B.js";import"./chunk-BYIQJK4N.js";import"./chunk-2JHPJHT3.js";import"./chunk-IQPNLC7F.js";import"./chunk-XBHPSVXL.js";import"./chunk-CVB76QSK.js";import"./chunk-2YTYYXDR.js";import"./chunk-JTWYZNJA.js";import"./chunk-V24VAM25.js";import"./chunk-YPT6325P.js";import"./chunk-UFUMBQ6L.js";import"./chunk-G54B2B32.js";import"./chunk-RWQ7J36Y.js";import"./chunk-6OFVILYU.js";import"./chunk-MZHPYWCT.js";import"./chunk-TOPUTPW6.js";import"./chunk-BNWPVCTT.js";import"./chunk-MO2HEFOH.js";import"./chunk-PLOVTRVF.js";import"./chunk-LOE6SDP6.js";import"./chunk-NFNN5ICM.js";import{a as r}from"./chunk-VD2JUBMC.js";import"./chunk-V4YQJPFT.js";var i=r(t=>`${o(t)}
  .swimlane.cluster:not([data-color-id]) rect {
    stroke: ${t.clusterBorder} !important;
  }
  [data-look="neo"].cluster rect {
    filter: none;
  }
`,"getStyles"),e=i,F=m({styles:e});export{F as diagram};
