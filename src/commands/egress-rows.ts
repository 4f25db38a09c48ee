import { parseAddress } from '../objects/address.ts';
import type { EgressIP } from '../objects/types/ovn.ts';

/** An address of an EgressIP. */
export interface EgressRow {
  /** Canonical; as the spec has it where it is none. */
  readonly address: string;
  /** The name of the object. */
  readonly egressIP: string;
  /** The node that has it; undefined: none. */
  readonly node: string | undefined;
}

/** The addresses of an EgressIP in the order of its spec. */
export function egressRows({ metadata, spec, status }: EgressIP): readonly EgressRow[] {
  const items = new Map(
    (status?.items ?? []).map(({ egressIP, node }) => [parseAddress(egressIP)?.canonical, node]),
  );
  return spec.egressIPs.map((text) => {
    const address = parseAddress(text)?.canonical;
    return { address: address ?? text, egressIP: metadata.name ?? '', node: items.get(address) };
  });
}
