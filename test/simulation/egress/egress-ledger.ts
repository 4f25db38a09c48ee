import type { Transport } from '../../../src/client/transport.ts';
import { parseAddress } from '../../../src/objects/address.ts';
import { listAt, textAt } from '../../../src/objects/json.ts';
import { Follower } from '../faults/follower.ts';

/** Watches over the whole history of EgressIPs, beside the unreliable network: what is wrong for a moment only counts too. */
export class EgressLedger {
  /** What was against a rule, in words. */
  readonly wrong: string[] = [];
  /** How many versions had another assignment than the one before. */
  changes = 0;
  /** By name: the assigned addresses, and their nodes. */
  readonly present = new Map<string, ReadonlyMap<string, string>>();
  readonly #follower = new Follower('/apis/k8s.ovn.org/v1/egressips', (object, isGone) => {
    const name = object.metadata.name ?? '';
    const before = JSON.stringify([...(this.present.get(name) ?? [])]);
    this.present.delete(name);
    if (!isGone) this.#note(name, listAt(object, 'status', 'items'));
    if (JSON.stringify([...(this.present.get(name) ?? [])]) !== before) this.changes++;
  });

  connect(client: Transport): void {
    this.#follower.connect(client);
  }

  async close(): Promise<void> {
    await this.#follower.close();
  }

  #note(name: string, items: readonly unknown[]): void {
    const own = new Map<string, string>();
    for (const item of items) {
      const address = parseAddress(textAt(item, 'egressIP'))?.canonical ?? 'no address';
      const node = textAt(item, 'node');
      const elsewhere = own.get(address);
      if (elsewhere !== undefined) this.wrong.push(`${address} of ${name} on ${elsewhere} and ${node}`);
      if ([...own.values()].includes(node)) this.wrong.push(`${name} has two addresses on ${node}`);
      for (const [other, others] of this.present) {
        const held = others.get(address);
        if (held !== undefined)
          this.wrong.push(`${address} of ${name} on ${node} and of ${other} on ${held}`);
      }
      own.set(address, node);
    }
    this.present.set(name, own);
  }
}
