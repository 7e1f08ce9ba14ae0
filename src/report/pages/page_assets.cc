#include "thimble/report/pages/page_assets.h"

namespace thimble {

std::string_view PageRules() {
  return R"css(
:root{--ink:#1c2128;--muted:#5b6470;--ground:#fff;--card:#fff;--edge:#dfe3e8;--soft:#f3f5f7}
@media screen and (prefers-color-scheme:dark){
:root{--ink:#e6e9ed;--muted:#9aa4b0;--ground:#0e1115;--card:#14181d;--edge:#2e353e;--soft:#1e242b}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;text-size-adjust:100%}
body{margin:0;background:var(--ground);color:var(--ink);line-height:1.5;font-size:15px;
font-family:system-ui,-apple-system,'Segoe UI','Helvetica Neue',Arial,sans-serif}
main{max-width:900px;margin:0 auto;padding:28px 16px 48px}
h1{font-size:26px;line-height:1.2;margin:0 0 4px;overflow-wrap:anywhere}
h2{font-size:18px;margin:36px 0 10px;break-after:avoid}
p{margin:0 0 10px;overflow-wrap:anywhere;max-width:75ch}
.lead{font-size:17px}
.muted,figcaption,small{color:var(--muted)}
.warn{border-left:3px solid #ee6677;padding-left:10px}
.tiles{display:grid;grid-template-columns:repeat(auto-fill,minmax(180px,1fr));gap:10px;
margin:18px 0 0}
.tiles div{background:var(--card);border:1px solid var(--edge);border-radius:8px;padding:9px 12px}
.tiles dt{color:var(--muted);font-size:13px}
.tiles dd{margin:0;font-size:19px;font-weight:600;font-variant-numeric:tabular-nums;
overflow-wrap:anywhere}
.tiles small{display:block;font-size:12.5px;font-weight:400;min-height:1.5em}
figure{margin:0 0 14px;background:var(--card);border:1px solid var(--edge);border-radius:8px;
padding:16px 18px;break-inside:avoid}
figcaption{font-size:13.5px;margin-top:10px;max-width:80ch}
.pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(400px,100%),1fr));gap:14px}
.pair figure{margin:0}
.plot{display:block;width:100%;height:auto;touch-action:pan-x pan-y;overflow:visible;
outline:none;-webkit-tap-highlight-color:transparent}
.plot:focus-visible{outline:2px solid #4477aa;outline-offset:4px}
.narrow{display:none}
.scroll{overflow-x:auto}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:14px;width:100%}
th,td{padding:4px 10px;border-bottom:1px solid var(--edge);text-align:right;white-space:nowrap}
th:first-child{text-align:left;padding-left:0}
tbody th{font-weight:400}
thead th{color:var(--muted);font-weight:500}
td:last-child,thead th:last-child{padding-right:0}
pre{background:var(--soft);border-radius:8px;padding:12px 14px;margin:0 0 12px;font-size:13px;
overflow-x:auto;line-height:1.45}
pre.wrap{white-space:pre-wrap;overflow-wrap:anywhere}
details summary{cursor:pointer;margin-bottom:8px}
#tip{position:fixed;z-index:9;pointer-events:none;max-width:min(340px,92vw);padding:7px 10px;
border-radius:6px;background:#1c2128;color:#f4f6f8;font-size:12.5px;line-height:1.4;
white-space:pre-line;overflow-wrap:anywhere;font-variant-numeric:tabular-nums;
box-shadow:0 2px 12px rgba(0,0,0,.3)}
#tip b{display:block}
@media screen and (prefers-color-scheme:dark){#tip{background:#e6e9ed;color:#14181d}}
@media (max-width:640px){
main{padding:20px 14px 36px}
h1{font-size:22px}
.tiles{grid-template-columns:1fr 1fr}
.tiles dd{font-size:17px}
figure{padding:12px 8px;border-radius:6px}
figcaption{padding:0 4px}
table{font-size:13px}
th,td{padding:4px 6px}
.wide{display:none}
.narrow{display:block}}
@media print{
main{max-width:none;padding:0 2px}
.pair{grid-template-columns:1fr 1fr}
.wide{display:block}
.narrow{display:none}
*{print-color-adjust:exact;-webkit-print-color-adjust:exact}}
)css";
}

std::string_view PageScript() {
  return R"js(
'use strict';
(() => {
  const tip = document.getElementById('tip');
  const texts = new Map();  // mark -> its title, removed so that it is not shown twice
  let current = null;
  for (const title of document.querySelectorAll('svg.plot title')) {
    texts.set(title.parentNode, title.textContent);
    title.remove();
  }
  const hide = () => {
    if (current) current.classList.remove('on');
    current = null;
    tip.hidden = true;
  };
  const place = (x, y) => {
    const box = tip.getBoundingClientRect();
    const room = 14;
    const left = x + room + box.width > innerWidth ? x - room - box.width : x + room;
    const top = y + room + box.height > innerHeight ? y - room - box.height : y + room;
    tip.style.left = Math.max(4, Math.min(left, innerWidth - box.width - 4)) + 'px';
    tip.style.top = Math.max(4, top) + 'px';
  };
  const show = (mark, x, y) => {
    if (mark !== current) {
      hide();
      current = mark;
      mark.classList.add('on');
      const [first, ...rest] = texts.get(mark).split('\n');
      const head = document.createElement('b');
      head.textContent = first;
      tip.replaceChildren(head, rest.join('\n'));
      tip.hidden = false;
    }
    place(x, y);
  };
  const point = (event) => {
    if (texts.has(event.target)) show(event.target, event.clientX, event.clientY);
    else hide();
  };
  document.addEventListener('pointermove', point);
  document.addEventListener('pointerdown', point);
  // The tip stays visible after a touch ends.
  document.addEventListener('pointerleave', (event) => {
    if (event.pointerType !== 'touch') hide();
  });
  addEventListener('scroll', hide, {passive: true});
  const showAt = (mark) => {
    const box = mark.getBoundingClientRect();
    show(mark, box.x + box.width / 2, box.y + box.height / 2);
  };
  for (const plot of document.querySelectorAll('svg.plot')) {
    const marks = [...plot.querySelectorAll('rect')].filter((mark) => texts.has(mark));
    if (marks.length === 0) continue;
    plot.tabIndex = 0;
    let at = Math.max(0, marks.findIndex((mark) => mark.classList.contains('peak')));
    plot.addEventListener('focus', () => {
      if (plot.matches(':focus-visible')) showAt(marks[at]);
    });
    plot.addEventListener('blur', () => {
      if (plot.contains(current)) hide();
    });
    plot.addEventListener('keydown', (event) => {
      const move = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key];
      if (event.key === 'Escape') hide();
      if (!move) return;
      event.preventDefault();
      at = (at + move + marks.length) % marks.length;
      showAt(marks[at]);
    });
  }
})();
)js";
}

}  // namespace thimble
