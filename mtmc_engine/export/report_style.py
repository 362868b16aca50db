"""How the report looks: light and dark, on a phone and on a desk, and on paper."""

STYLE = """
:root { color-scheme: light dark; --ink: #1c2026; --weak: #5c6470; --line: #d9dde3;
  --page: #fff; --panel: #f5f6f8; --accent: #1f5fbf; --good: #1a7038; --bad: #b3261e;
  --added: #e3f4e7; --removed: #fbe7e6; }
@media (prefers-color-scheme: dark) { :root { --ink: #dfe3e8; --weak: #98a1ad; --line: #343a43;
  --page: #14171c; --panel: #1c2128; --accent: #86b4ea; --good: #6fca8b; --bad: #f28b82;
  --added: #16301f; --removed: #361b21; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { margin: 0; font-size: 1.7rem; overflow-wrap: anywhere; }
h2 { margin: 2.5rem 0 0.75rem; font-size: 1.15rem; border-bottom: 1px solid var(--line); }
header p, .note, .weak, small { color: var(--weak); }
header p { margin: 0.25rem 0 1.5rem; }
.headline { margin: 0; font-size: 2.4rem; font-weight: 650; line-height: 1.2; }
.headline + p { margin: 0 0 1rem; color: var(--weak); }
.good { color: var(--good); } .bad { color: var(--bad); }
small { display: block; font-size: 0.85rem; }
.wide { overflow-x: auto; margin: 0.5rem 0 1rem; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; vertical-align: top; padding: 0.35rem 1rem 0.35rem 0;
  border-bottom: 1px solid var(--line); }
th { color: var(--weak); font-weight: 500; font-size: 0.85rem; white-space: nowrap; }
.bar { display: flex; flex-wrap: wrap; justify-content: space-between; margin: 0.6rem 0; }
.bar i { flex-basis: auto; display: block; height: 0.6rem; border-radius: 3px;
  background: var(--weak); }
.bar::after { content: ""; flex-basis: 100%; order: 1; }
.bar i { order: 2; }
.bar.own i { background: var(--accent); } .bar.own { font-weight: 600; }
.bar.hollow i { background: none; border: 1.5px dashed var(--weak); }
.bar.hollow.own i { border-color: var(--accent); }
.bar.floor i { background: repeating-linear-gradient(90deg, var(--weak) 0 4px, #0000 4px 8px); }
.unmeasured { border: 1px dashed currentColor; border-radius: 4px; padding: 0 0.3em;
  font-size: 0.75rem; font-weight: 400; white-space: nowrap; vertical-align: middle; }
details { border: 1px solid var(--line); border-radius: 6px; margin: 0.5rem 0;
  padding: 0 0.9rem; background: var(--panel); }
summary { cursor: pointer; padding: 0.5rem 0; font-weight: 600; }
.cases { columns: 14rem; padding-left: 1.1rem; font-size: 0.9rem; }
pre, .diff { font: 13px/1.45 ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
pre { overflow-x: auto; padding: 0.9rem; border: 1px solid var(--line); border-radius: 6px;
  background: var(--panel); }
.diff td { padding: 0 0.6rem 0 0; border: 0; white-space: pre; }
.diff td:nth-child(-n+2) { color: var(--weak); text-align: right; user-select: none; }
.diff .added { background: var(--added); } .diff .removed { background: var(--removed); }
.diff .gap { color: var(--weak); }
@media print { details { break-inside: avoid; } .wide, pre { overflow: visible; } }
"""
