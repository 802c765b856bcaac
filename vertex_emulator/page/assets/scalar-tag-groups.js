// Which tags are drawn: grouped by prefix, filtered, and no more at once than a page has room for.

const MOST_OPEN_AT_FIRST = 6;
const MOST_IN_GROUP = 12;
const MOST_DRAWN = 48;
const MOST_LETTERS = 12_000; // of the tags in the address of a request, of which servers take 16 kB

/** Tags by their prefix: `[{ name, tags }]`; those without one come first, under "". */
export function groupsOf(tags) {
  const groups = new Map([["", []]]);
  for (const tag of tags) {
    const prefix = tag.includes("/") ? tag.slice(0, tag.indexOf("/")) : "";
    if (groups.has(prefix)) groups.get(prefix).push(tag);
    else groups.set(prefix, [tag]);
  }
  return [...groups].filter(([, members]) => members.length).map(([name, members]) => ({ name, tags: members }));
}

/** Whether tags are few enough to be shown without groups. */
export function isFew(tags) {
  return tags.length <= MOST_IN_GROUP;
}

/** The groups with a tag that has all words of `text`, each with `isOpen` and the tags that are `drawn` of it. `toggled`
 * has those that the reader has opened or closed, `full` those of which the reader has asked for all tags. */
export function shownGroups(tags, text, toggled, full) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const matching = tags.filter((tag) => words.every((word) => tag.toLowerCase().includes(word)));
  if (isFew(tags)) return matching.length ? [{ name: "", tags: matching, isOpen: true, drawn: matching }] : [];
  let count = 0;
  let drawnCount = 0;
  let letters = 0;
  return groupsOf(matching).map(({ name, tags: members }) => {
    const isOpen = toggled.get(name) ?? (words.length > 0 || count === 0 || count + members.length <= MOST_OPEN_AT_FIRST);
    count += members.length;
    const most = isOpen ? Math.min(full.has(name) ? members.length : MOST_IN_GROUP, MOST_DRAWN - drawnCount) : 0;
    const drawn = members.slice(0, most).filter((tag) => (letters += encodeURIComponent(tag).length) <= MOST_LETTERS);
    drawnCount += drawn.length;
    return { name, tags: members, isOpen, drawn };
  });
}
