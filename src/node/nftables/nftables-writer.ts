import type { ForwardingPlan } from '../../network/forwarding/forwarding-plan.ts';
import type { Host } from '../../host/host.ts';
import type { ObjectKey } from '../../objects/key.ts';
import { type IPFamily, ipFamilies } from '../../objects/address.ts';
import { tableName } from './commands.ts';
import { defaultMarkMask } from './marks.ts';
import { Nft } from './nft.ts';
import { nftFamily, NftablesTable, type Written } from './nftables-table.ts';

export interface NftablesWriterOptions {
  readonly host: Host;
  /** The bits of the packet mark that are ours (`marks.ts`); 1 to 2^32-1. */
  readonly markMask?: number;
}

/** Writes a node's plan into its kernel, as the tables `ip servicenet` and `ip6 servicenet`. One call at a time. */
export class NftablesWriter {
  readonly #nft: Nft;
  readonly #markMask: number;
  readonly #tables = new Map<IPFamily, NftablesTable>();

  constructor({ host, markMask = defaultMarkMask }: NftablesWriterOptions) {
    this.#nft = new Nft(host);
    this.#markMask = markMask;
  }

  /**
   * Programs the kernel by the plan.
   *
   * @param touched the Services whose plans may have changed since the last sync; default all.
   * @throws {NftError} The next sync then reads the contents of the kernel.
   */
  async sync(plan: ForwardingPlan, touched?: Iterable<ObjectKey>): Promise<Written> {
    try {
      return await this.#sync(plan, touched);
    } catch (error) {
      this.distrust(); // A failed sync leaves the table unknown: the next one reads it.
      throw error;
    }
  }

  async #sync(plan: ForwardingPlan, touched: Iterable<ObjectKey> | undefined): Promise<Written> {
    let transactions = 0;
    let elements = 0;
    for (const node of plan.node.families) {
      let table = this.#tables.get(node.family);
      if (table === undefined) {
        table = new NftablesTable(this.#nft, node.family, this.#markMask);
        this.#tables.set(node.family, table);
      }
      const written = await table.sync(plan, node, touched);
      transactions += written.transactions;
      elements += written.elements;
    }
    return { transactions, elements };
  }

  /** The next sync compares everything with what the kernel has, and mends it. */
  distrust(): void {
    for (const table of this.#tables.values()) table.forget();
  }

  /** Ends the program that {@link sync} leaves behind for the next change. What was written stays. */
  async close(): Promise<void> {
    await this.#nft.close();
  }

  /** Removes the tables of all agents of this project. @throws {NftError} */
  async cleanUp(): Promise<void> {
    this.#tables.clear();
    await this.#nft.run(
      ipFamilies.flatMap((family) => {
        const table = { family: nftFamily(family), name: tableName };
        return [{ add: { table } }, { delete: { table } }];
      }),
    );
  }
}
