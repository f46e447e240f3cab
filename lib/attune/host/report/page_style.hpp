// The style of a TrainingPage. Never included by attune.hpp.
#pragma once

#include <attune/kernels/policy.hpp>

namespace ATTUNE_NAMESPACE::host {

/// The style sheet of the page. Memory classes have distinct colors in light and dark mode, and a fixed
/// order.
inline constexpr const char* kPageStyle = R"(:root {
  color-scheme: light dark;
  --page: #ffffff; --card: #f6f8fa; --line: #d5dbe1; --ink: #1b2128; --soft: #59636e;
  --accent: 31 95 191; --good: 26 127 72; --bad: 200 60 30;
  --m0: #1f5fbf; --m1: #d9822b; --m2: #2f8f5b; --m3: #8b57c2; --m4: #c2487a; --m5: #4aa3b8; --m6: #8a8f98;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #0f1317; --card: #181e24; --line: #323b45; --ink: #e4e8ec; --soft: #9aa5b1;
    --accent: 110 168 254; --good: 62 180 115; --bad: 240 110 80;
    --m0: #5f9dff; --m1: #f0a050; --m2: #4fbf83; --m3: #b388eb; --m4: #ea7aa8; --m5: #6cc6da; --m6: #a7adb6;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); line-height: 1.45;
  font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main { max-width: 1000px; margin: 0 auto; padding: 20px 16px 48px; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 16px; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin: 0 0 10px; overflow-wrap: anywhere; }
h3 { font-size: .95rem; margin: 14px 0 8px; overflow-wrap: anywhere; }
p { margin: 0 0 12px; }
.soft { color: var(--soft); font-size: .875rem; font-weight: normal; }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(140px, 1fr)); gap: 8px; margin: 0 0 16px; }
dl div, section { background: var(--card); border: 1px solid var(--line); border-radius: 8px; }
dl div { padding: 8px 12px; }
dt { color: var(--soft); font-size: .8rem; }
dd { margin: 0; font-weight: 600; overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
section { padding: 14px 16px; margin: 0 0 16px; }
figure { margin: 0; min-width: 0; }
figcaption { font-size: .875rem; font-weight: 600; margin: 0 0 6px; }
.maps figcaption { font-weight: normal; color: var(--soft); margin: 0 0 3px; }
svg { display: block; width: 100%; height: auto; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 380px), 1fr)); gap: 20px; }
.chart text { fill: var(--soft); font-size: 12.5px; font-family: inherit; }
.chart .grid { stroke: var(--line); }
.chart .axis, .chart .tick { stroke: var(--soft); }
.chart .curve { fill: none; stroke: rgb(var(--accent)); stroke-width: 2; stroke-linejoin: round; }
.chart .dot { fill: rgb(var(--accent)); }
.chart .ring { fill: none; stroke: rgb(var(--bad)); stroke-width: 2; }
.chart .hit { fill: rgb(var(--accent)); fill-opacity: 0; }
.chart .hit:hover { fill-opacity: .15; }
.maps { display: grid; grid-template-columns: repeat(auto-fill, minmax(150px, 1fr)); gap: 16px; }
.map { background: var(--page); border: 1px solid var(--line); }
.map rect { fill: rgb(var(--accent)); }
.map rect:hover { stroke: var(--ink); stroke-width: .8; }
.sample .map rect { fill: var(--ink); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums; }
th { font-weight: 600; color: var(--soft); padding: 4px 8px; }
td { padding: 4px 8px; text-align: right; white-space: nowrap; }
.confusion td { border: 1px solid var(--card); min-width: 38px; }
.confusion th[scope=row], .bytes th[scope=row] { text-align: left; white-space: nowrap; }
.confusion .hit { background: rgb(var(--good) / var(--shade)); }
.confusion .miss { background: rgb(var(--bad) / var(--shade)); }
.confusion .none { background: var(--page); color: var(--soft); }
.bytes th { text-align: right; }
.bytes tr:first-child th:first-child { text-align: left; }
.bytes tr + tr { border-top: 1px solid var(--line); }
.barname { font-size: .875rem; margin: 0 0 4px; }
.bar { display: flex; height: 26px; margin: 0 0 12px; background: var(--page); border: 1px solid var(--line);
  border-radius: 4px; overflow: hidden; }
.bar span { flex: none; min-width: 1px; }
.key { display: inline-block; width: 11px; height: 11px; margin-right: 7px; border-radius: 2px; }
.m0 { background: var(--m0); } .m1 { background: var(--m1); } .m2 { background: var(--m2); }
.m3 { background: var(--m3); } .m4 { background: var(--m4); } .m5 { background: var(--m5); }
.m6 { background: var(--m6); }
@media (max-width: 480px) {
  main { padding: 14px 10px 32px; }
  section { padding: 12px 10px; }
  .maps { grid-template-columns: repeat(auto-fill, minmax(125px, 1fr)); gap: 12px; }
  .chart text { font-size: 15px; }
  .confusion, .bytes { font-size: .75rem; }
  .confusion td, .confusion th { padding: 4px 3px; min-width: 24px; }
  .bytes td, .bytes th { padding: 4px; }
  .key { margin-right: 4px; }
}
)";

}  // namespace ATTUNE_NAMESPACE::host
