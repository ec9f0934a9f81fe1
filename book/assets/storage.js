/* Storage that every script of a page can use as if it were always there.

   The theme would stop where a browser denies storage or has none left: there what is kept lasts until
   the page is left. What was kept before storage was full is read still; progress.js writes past this,
   to tell its reader what isn't kept. Loaded before all other scripts: see layout.html. */
for (const name of ["localStorage", "sessionStorage"]) {
  try {
    window[name].getItem("can be kept");
  } catch {
    const values = new Map();
    const getItem = (key) => values.get(key) ?? null;
    const setItem = (key, value) => values.set(key, String(value));
    const removeItem = (key) => values.delete(key);
    Object.defineProperty(window, name, { value: { getItem, setItem, removeItem } });
  }
}
{
  const unwritten = new Map(); // storage -> what it had no room for
  const { getItem, setItem, removeItem } = Storage.prototype;
  Object.assign(Storage.prototype, {
    getItem(key) {
      return unwritten.get(this)?.get(key) ?? getItem.call(this, key);
    },
    setItem(key, value) {
      unwritten.get(this)?.delete(key);
      try {
        setItem.call(this, key, value);
      } catch {
        if (!unwritten.has(this)) unwritten.set(this, new Map());
        unwritten.get(this).set(key, String(value));
      }
    },
    removeItem(key) {
      unwritten.get(this)?.delete(key);
      removeItem.call(this, key);
    },
  });
}
