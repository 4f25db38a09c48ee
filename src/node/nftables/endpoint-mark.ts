import type { PlannedEndpoint } from '../../network/forwarding/forwarding-plan.ts';

/** Below are slots. */
const firstMark = 2 ** 31;

/**
 * One connection mark for each endpoint of a Service port with session affinity: 2^31 to 2^32-1. It depends on the
 * Service port and the endpoint alone, so that clients keep their endpoint whatever else changes, also over a restart.
 * Marks are unique in the list; where two Service ports share one, a client of the one may get an endpoint of the other
 * Service port assigned, if that has the mark as well: its own, in any case.
 *
 * @param endpoints as the plan has them: where two would have one mark, the order decides.
 */
export function endpointMarks(
  portId: string,
  endpoints: readonly PlannedEndpoint[],
): ReadonlyMap<PlannedEndpoint, number> {
  const marks = new Map<PlannedEndpoint, number>();
  const taken = new Set<number>();
  for (const endpoint of endpoints) {
    let mark = firstMark + (hash(`${portId} ${endpoint.address} ${endpoint.port}`) >>> 1);
    while (taken.has(mark)) mark = mark === 2 ** 32 - 1 ? firstMark : mark + 1;
    taken.add(mark);
    marks.set(endpoint, mark);
  }
  return marks;
}

/** FNV-1a, 32 bits, with the final mixing of MurmurHash3. */
function hash(text: string): number {
  let value = 0x811c_9dc5;
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x0100_0193);
  value = Math.imul(value ^ (value >>> 16), 0x85eb_ca6b);
  value = Math.imul(value ^ (value >>> 13), 0xc2b2_ae35);
  return (value ^ (value >>> 16)) >>> 0;
}
