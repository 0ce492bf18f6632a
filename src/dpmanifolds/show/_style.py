"""The look of a report: light and dark, on paper and on a phone."""

__all__ = ["STYLE"]

STYLE = """
:root{color-scheme:light dark;--ink:#1d2733;--soft:#5a6572;--paper:#fff;--box:#f3f5f8;--line:#d9dee5;
--value:#0b6e99;--noise:#e07a1f;--warn:#8a2c0d;--warnbox:#fdeee6}
@media screen and (prefers-color-scheme:dark){:root{--ink:#e6eaf0;--soft:#a3adba;--paper:#14181d;--box:#1e242b;
--line:#343d48;--value:#4fb3dc;--noise:#f0a05a;--warn:#ffc9ae;--warnbox:#3b2117}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,
"DejaVu Sans",sans-serif}
main{max-width:46rem;margin:0 auto;padding:1.5rem 1.1rem 4rem}
h1{font-size:1.6rem;line-height:1.2;margin:.5rem 0;overflow-wrap:anywhere}
h2{font-size:1.15rem;margin:2.2rem 0 .4rem;padding-bottom:.25rem;border-bottom:1px solid var(--line)}
p{margin:.6rem 0}
.lead,figcaption,.note,.name,caption{color:var(--soft)}
.warning{background:var(--warnbox);color:var(--warn);border-left:4px solid currentColor;padding:.7rem 1rem}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(12rem,1fr));gap:.8rem;margin:1.3rem 0}
.card{background:var(--box);border-radius:.6rem;padding:.8rem 1rem;display:flex;flex-direction:column}
.card strong{font-size:1.35rem;font-variant-numeric:tabular-nums;overflow-wrap:anywhere}
.name,.note,figcaption,caption{font-size:.87rem}
figure{margin:1.2rem 0;text-align:center}
figure svg{width:100%;max-width:30rem;height:auto;color:var(--ink)}
figcaption{text-align:left}
.bars{display:grid;grid-template-columns:auto 1fr auto;gap:.35rem .8rem;align-items:center;
margin:1rem 0;font-size:.9rem}
.bar{background:var(--box);border-radius:.3rem;height:.9rem;overflow:hidden}
.fill{background:var(--noise);height:100%;print-color-adjust:exact;-webkit-print-color-adjust:exact}
.fill.coin{background:var(--soft)}
.scroll{overflow-x:auto}
table{border-collapse:collapse;font-size:.93rem}
caption{text-align:left;padding-bottom:.3rem}
.facts{width:100%}
.facts th,.facts td{text-align:left;vertical-align:top;padding:.4rem .8rem .4rem 0;border-bottom:1px solid var(--line)}
.facts th{font-weight:600;min-width:9.5rem}
.facts td{overflow-wrap:anywhere}
.value td{padding:.25rem .7rem;text-align:right;font-variant-numeric:tabular-nums;border:1px solid var(--line)}
blockquote{margin:.6rem 0;padding:.6rem 1rem;border-left:3px solid var(--value);background:var(--box);
overflow-wrap:anywhere}
pre{background:var(--box);padding:.8rem;border-radius:.4rem;overflow-x:auto;font-size:.82rem}
details{margin-top:2rem}
summary{cursor:pointer;color:var(--soft)}
.json{max-height:24rem;overflow:auto}
@media screen and (max-width:34rem){.facts th,.facts td{display:block;border:0;padding:.1rem 0}
.facts td{padding-bottom:.6rem}.facts tr{border-bottom:1px solid var(--line);display:block}}
@page{margin:16mm}
@media print{html{font-size:80%}body{font-size:1rem;line-height:1.4}main{max-width:none;padding:0}details{display:none}
h2{margin:1.1rem 0 .3rem;break-after:avoid}p{margin:.4rem 0;orphans:3;widows:3}
tr,figure,.cards,.bars,blockquote,pre{break-inside:avoid}figure{margin:.6rem 0}
figure svg{max-width:9cm;max-height:8.5cm}
.cards{grid-template-columns:repeat(3,1fr);margin:.8rem 0}.card,blockquote,pre{border:1px solid var(--line)}
.card{padding:.4rem .7rem}.facts th,.facts td{padding:.2rem .6rem .2rem 0}
.scroll{overflow:visible}}
"""
