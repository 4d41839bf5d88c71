// A vertical line over all charts at the time under the pointer, the values there, and the decision of that time.
const run = JSON.parse(document.getElementById("run").textContent);
const times = run.times, last = times[times.length - 1] || 1;
const cells = [...document.querySelectorAll(".cell")].map((cell) => ({ cell, now: cell.querySelector(".now") }));
const lines = [...document.querySelectorAll("li[data-at]")];
let here = null;

function shown(value, unit) {
  if (value === null || value === undefined) return "–";
  if (unit === "%") return (100 * value).toFixed(1) + " %";
  if (unit === "s") return value < 0.001 ? (1e6 * value).toPrecision(3) + " µs"
    : value < 1 ? (1000 * value).toPrecision(3) + " ms" : value.toPrecision(3) + " s";
  return value >= 1000 ? Math.round(value).toLocaleString("en") : String(+value.toPrecision(3));
}

function nearest(time) {
  let low = 0, high = times.length - 1;
  while (low < high) { const middle = (low + high) >> 1; if (times[middle] < time) low = middle + 1; else high = middle; }
  return low;
}

function go(at) {
  document.documentElement.style.setProperty("--x", (100 * times[at] / last) + "%");
  for (const { cell, now } of cells) {
    const [group, name, key, unit] = cell.dataset.of.split("\t");
    const column = group === "machine" ? run.machine[key] : group === "all" ? run.all[key] : run.queries[name][key];
    now.textContent = shown(column[at], unit);
  }
  const line = lines.filter((each) => +each.dataset.at <= at).pop() || null;
  if (line !== here) {
    if (here) here.classList.remove("here");
    if (line) { line.classList.add("here"); line.parentElement.scrollTop = line.offsetTop - line.parentElement.offsetTop - 60; }
    here = line;
  }
}

document.addEventListener("mousemove", (event) => {
  const plot = event.target.closest && event.target.closest(".plot");
  if (!plot) return;
  const box = plot.getBoundingClientRect();
  go(nearest(last * (event.clientX - box.left) / box.width));
});
for (const line of lines) line.addEventListener("click", () => go(+line.dataset.at));
const filter = document.getElementById("filter");
if (filter) filter.addEventListener("input", () => {
  for (const row of document.querySelectorAll("tr[data-query]"))
    row.hidden = !row.dataset.query.toLowerCase().includes(filter.value.toLowerCase());
});
