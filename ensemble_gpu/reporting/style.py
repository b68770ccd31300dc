"""The page's one style sheet: light and dark, wide and narrow, on a screen and on paper."""

CSS = """
:root{color-scheme:light dark;--page:#f6f7f9;--card:#fff;--ink:#1b2330;--soft:#5a6577;
--rule:#e1e5eb;--c0:#1763b6;--c1:#c2410c;--c2:#0f766e;--c3:#7e3fb2;--c4:#a16207;--c5:#be185d;--c6:#4d7c0f;
--c7:#475569;--up:#1763b6;--down:#c2410c}
@media (prefers-color-scheme:dark){:root{--page:#11151c;--card:#1a202a;--ink:#e6eaf0;--soft:#9aa6b7;
--rule:#2c3542;--c0:#6cb2f7;--c1:#fb9a5c;--c2:#4fd1bd;--c3:#c79bf2;--c4:#e3c04f;--c5:#f58bb8;--c6:#a8d46f;
--c7:#a9b6c8;--up:#6cb2f7;--down:#fb9a5c}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);
font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;
-webkit-text-size-adjust:100%}
main,header,nav,footer{max-width:1080px;margin:0 auto;padding:0 1rem}
header{padding-top:2rem}
h1{font-size:1.7rem;line-height:1.2;margin:0;overflow-wrap:anywhere}
header p{color:var(--soft);margin:.4rem 0 0;overflow-wrap:anywhere}
nav{margin-top:1rem}
nav ul{display:flex;flex-wrap:wrap;gap:.3rem 1rem;list-style:none;margin:0;padding:.6rem 0;
border-block:1px solid var(--rule);font-size:.9rem}
a{color:var(--c0)}
section{margin:2rem 0}
h2{font-size:1.25rem;margin:0 0 .2rem}
h3{font-size:1rem;margin:0 0 .3rem;overflow-wrap:anywhere}
section>p{color:var(--soft);margin:.2rem 0 .9rem;max-width:46rem}
.grid{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,25rem),1fr));gap:1rem}
.card{background:var(--card);border:1px solid var(--rule);border-radius:10px;padding:.9rem 1rem;
margin:0;min-width:0}
.grid+.card,.card+.grid,.card+.card,.grid+.grid{margin-top:1rem}
.grid .card+.card,.tiles .card+.card{margin-top:0}
.tiles+.card,.tiles+.grid{margin-top:1rem}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(9.5rem,1fr));gap:1rem}
.tile b{display:block;font-size:1.6rem;font-weight:650;line-height:1.2;
font-variant-numeric:tabular-nums}
.tile span{color:var(--soft);font-size:.85rem;display:block}
svg{display:block;width:100%;height:auto;max-width:540px;margin:0 auto}
svg text{font:13px system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;
fill:var(--ink)}
svg .tick{fill:var(--soft);font-size:12px;font-variant-numeric:tabular-nums}
svg .small{font-size:12px}
@media (max-width:520px){svg text{font-size:15px}svg .tick,svg .small{font-size:14px}}
svg .strong{font-weight:650;fill:var(--ink)}
.line{fill:none;stroke-width:2;stroke-linejoin:round;stroke:var(--c,var(--ink))}
.thin{stroke-width:1.2}
.dot{fill:var(--c,var(--ink));fill-opacity:.75}
.dot.faint{fill-opacity:.35}
.fill{fill:var(--c,var(--ink))}
.reference{stroke:var(--soft);stroke-width:1.2;stroke-dasharray:4 4;--c:var(--soft)}
.dash{stroke-dasharray:6 4}
.rule{stroke:var(--rule);stroke-width:1}
.axis{stroke:var(--soft);stroke-width:1}
.cell{fill:var(--page)}
.rows{fill:var(--soft);fill-opacity:.35}
.c0{--c:var(--c0)}.c1{--c:var(--c1)}.c2{--c:var(--c2)}.c3{--c:var(--c3)}.c4{--c:var(--c4)}
.c5{--c:var(--c5)}.c6{--c:var(--c6)}.c7{--c:var(--c7)}.up{--c:var(--up)}.down{--c:var(--down)}
figcaption{font-size:.87rem;color:var(--soft);margin-top:.4rem}
.legend{display:flex;flex-wrap:wrap;gap:.1rem 1rem;list-style:none;margin:.3rem 0 0;padding:0;
font-size:.87rem}
.legend li{display:flex;align-items:center;gap:.45rem;min-width:0;overflow-wrap:anywhere}
.key{flex:none;width:1.3rem;border-top:3px solid var(--c,var(--soft))}
.key.dash,.key.reference{border-top-style:dashed;border-top-width:2px}
table{border-collapse:collapse;font-size:.87rem;font-variant-numeric:tabular-nums;width:100%}
th,td{text-align:left;padding:.25rem .9rem .25rem 0;border-bottom:1px solid var(--rule);
vertical-align:top;overflow-wrap:anywhere}
th{font-weight:600}
thead th{color:var(--soft);font-weight:500;white-space:nowrap;overflow-wrap:normal}
tbody th{min-width:7rem}
.n{text-align:right;white-space:nowrap}
.scroll{overflow-x:auto}
.facts{display:flex;flex-wrap:wrap;gap:.1rem 1.4rem;margin:0 0 .5rem;font-size:.87rem}
.facts dt{color:var(--soft)}
.facts div{display:flex;gap:.45rem;min-width:0}
.facts dd{margin:0;font-weight:600;overflow-wrap:anywhere}
details{margin-top:.5rem}
summary{cursor:pointer;color:var(--soft);font-size:.87rem}
code{font:.85em ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;overflow-wrap:anywhere}
footer{color:var(--soft);font-size:.85rem;padding-bottom:3rem}
@media print{body{background:none}.card{break-inside:avoid}nav{display:none}}
""".strip()
