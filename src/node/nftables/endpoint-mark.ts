import type { PlannedEndpoint } from '../../network/forwarding/forwarding-plan.ts';

/** Below are slots. */
const firstMark = 2 ** 31;

/**
 * One connection mark for each endpoint of a Service port with session affinity, in the order of the endpoints: 2^31
 * to 2^32-1. It depends on the Service port and the endpoint alone, so that clients keep their endpoint whatever else
 * changes, also over a restart. Marks are unique in the list; where two Service ports share one, a client of the one
 * may get an endpoint of the other Service port assigned, if that has the mark as well: its own, in any case.
 */
export function endpointMarks(portId: string, endpoints: readonly PlannedEndpoint[]): readonly number[] {
  const taken = new Set<number>();
  return endpoints.map(({ address, port }) => {
    let mark = firstMark + (hash(`${portId} ${address} ${port}`) >>> 1);
    while (taken.has(mark)) mark = mark === 2 ** 32 - 1 ? firstMark : mark + 1;
    taken.add(mark);
    return mark;
  });
}

/** FNV-1a, 32 bits, with the final mixing of MurmurHash3. */
function hash(text: string): number {
  let value = 0x811c_9dc5;
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x0100_0193);
  value = Math.imul(value ^ (value >>> 16), 0x85eb_ca6b);
  value = Math.imul(value ^ (value >>> 13), 0xc2b2_ae35);
  return (value ^ (value >>> 16)) >>> 0;
}
