// The styles of the printed certificate: usually one A4 page, black on white, no fonts to load. Its hash is
// part of the page's policy, so it is constant.

export const style = `
@page { size: A4; margin: 11mm 15mm 9mm; }
* { box-sizing: border-box; }
html { background: #e9e7e2; }
body { margin: 0; color: #1a1a1a; font: 7.2pt/1.32 "Helvetica Neue", Helvetica, Arial, "Liberation Sans", sans-serif; }
main { width: 210mm; min-height: 297mm; margin: 8mm auto; padding: 11mm 15mm 9mm; background: #fff; box-shadow: 0 1px 6px rgb(0 0 0 / 18%); }
header { display: flex; justify-content: space-between; align-items: flex-end; padding-bottom: 2.4mm; border-bottom: 1.2pt solid #1a1a1a; }
h1 { margin: 0; font: 400 21pt/1 Georgia, Charter, "Liberation Serif", serif; letter-spacing: -0.01em; }
h2 { margin: 0 0 1.2mm; font-size: 6.4pt; line-height: 1.2; font-weight: 700; letter-spacing: 0.09em; text-transform: uppercase; color: #5a564e; }
p { margin: 0; }
code, time, .jws { font-family: "SFMono-Regular", Menlo, Consolas, "Liberation Mono", monospace; font-size: 0.9em; }
time { font-variant-numeric: tabular-nums; }
.hash { font-size: 0.8em; overflow-wrap: anywhere; }
.number { text-align: right; line-height: 1.5; }
.number span { color: #5a564e; }
.statement { margin: 2.8mm 0 0; font: 9.6pt/1.4 Georgia, Charter, "Liberation Serif", serif; }
section { margin-top: 2.7mm; break-inside: avoid; }
.columns { display: grid; grid-template-columns: 1fr 1fr; column-gap: 8mm; }
dl { display: grid; grid-template-columns: 25mm 1fr; margin: 0; }
dt, dd { margin: 0; padding: 0.32mm 0; border-top: 0.4pt solid #d9d5cc; }
dt { color: #5a564e; }
dd { overflow-wrap: anywhere; }
table { width: 100%; border-collapse: collapse; }
th { padding: 0 0 0.6mm; font-weight: 400; text-align: left; color: #5a564e; }
td { padding: 0.32mm 0; border-top: 0.4pt solid #d9d5cc; vertical-align: top; overflow-wrap: anywhere; }
th:nth-child(n + 3), td:nth-child(n + 3), tfoot td + td, .empty td + td { text-align: right; font-variant-numeric: tabular-nums; padding-left: 4mm; white-space: nowrap; }
.empty td { color: #5a564e; }
tfoot td { border-top: 0.8pt solid #1a1a1a; font-weight: 700; }
ul { margin: 0; padding: 0; list-style: none; }
li { padding: 0.32mm 0; border-top: 0.4pt solid #d9d5cc; }
ul + p { padding-top: 0.32mm; border-top: 0.4pt solid #d9d5cc; }
.jws { margin-top: 1.6mm; padding-top: 1.6mm; border-top: 0.8pt solid #1a1a1a; font-size: 4.6pt; line-height: 1.22; overflow-wrap: anywhere; word-break: break-all; color: #333; }
@media (max-width: 215mm) { main { width: auto; margin: 0; } }
@media print {
  html { background: #fff; }
  main { width: auto; min-height: 0; margin: 0; padding: 0; box-shadow: none; }
}
`
