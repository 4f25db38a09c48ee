/**
 * Takes the oldest entries away, in the order in which they were set, once there are a tenth more than `most`. Not one by one:
 * a Map that begins with thousands of deleted entries passes over all of them to find its first.
 *
 * @returns what was taken.
 */
export function takeOldest<K, V>(map: Map<K, V>, most: number): readonly V[] {
  if (map.size <= most + most / 10) return [];
  const taken: V[] = [];
  for (const [key, value] of map) {
    map.delete(key);
    taken.push(value);
    if (map.size <= most) break;
  }
  return taken;
}

/** Sets an entry, which is the youngest then. Of more than `most` the oldest are taken away, as {@link takeOldest} does. */
export function setYoungest<K, V>(map: Map<K, V>, key: K, value: V, most: number): void {
  map.delete(key);
  map.set(key, value);
  takeOldest(map, most);
}
