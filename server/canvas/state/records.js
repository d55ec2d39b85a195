// @ts-check
/**
 * Records by ids that others choose: models, clients, the names of files. A record has no prototype, so that `__proto__` and
 * `constructor` are ids like any other. Pure: nothing that is given is altered.
 */

/**
 * @template T
 * @param {Iterable<readonly [string, T]>} [entries]
 * @returns {Record<string, T>}
 */
export function recordOf(entries = []) {
  const record = Object.create(null);
  for (const [key, value] of entries) {
    record[key] = value;
  }
  return record;
}

/** All that several records have; the last one that has an id counts. @template T @param {...Record<string, T>|undefined} records @returns {Record<string, T>} */
export function mergeRecords(...records) {
  return Object.assign(Object.create(null), ...records);
}

/** @template T @param {Record<string, T>} record @param {string} key @param {T} value @returns {Record<string, T>} */
export function withEntry(record, key, value) {
  const next = mergeRecords(record);
  next[key] = value;
  return next;
}

/** @template T @param {Record<string, T>} record @param {string} key @returns {Record<string, T>} */
export function without(record, key) {
  const next = mergeRecords(record);
  delete next[key];
  return next;
}
