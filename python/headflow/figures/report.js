// The contents stay open where they stand beside the page; on a narrow page a choice closes them.
const contents = document.querySelector("nav details");
const beside = matchMedia("(min-width: 75rem)");
const settle = () => { contents.open = beside.matches; };
settle();
beside.addEventListener("change", settle);
contents.addEventListener("click", event => {
  if (event.target.closest("a") && !beside.matches) contents.open = false;
});

// Which figure is being read.
const entries = new Map([...contents.querySelectorAll("a")].map(a => [decodeURIComponent(a.hash.slice(1)), a]));
const seen = new IntersectionObserver(changes => {
  for (const change of changes) {
    const entry = entries.get(decodeURIComponent(change.target.id));
    if (entry) entry.toggleAttribute("aria-current", change.isIntersecting);
  }
}, {rootMargin: "-20% 0px -70% 0px"});
document.querySelectorAll("section.figure, #verify").forEach(part => seen.observe(part));

// Statements that have all the words, and the verdict.
const filter = document.getElementById("filter");
if (filter) {
  const rows = [...document.querySelectorAll("#verify tbody tr")];
  const texts = rows.map(row => row.textContent.toLowerCase());
  const count = filter.querySelector("output");
  const apply = () => {
    const words = filter.elements.words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const verdict = filter.elements.verdict.value;
    rows.forEach((row, i) => {
      row.hidden = !words.every(word => texts[i].includes(word)) || (verdict && !row.dataset.verdict.split(",").includes(verdict));
    });
    count.textContent = rows.filter(row => !row.hidden).length + " of " + rows.length + " statements";
  };
  filter.addEventListener("input", apply);
  filter.addEventListener("submit", event => event.preventDefault());
  filter.hidden = false;
  apply();
}
