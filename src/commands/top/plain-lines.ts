import type { Writable } from 'node:stream';
import { keyOf, type ObjectKey } from '../../objects/key.ts';
import type { KubeObject } from '../../objects/meta.ts';
import type { EgressIP } from '../../objects/types/ovn.ts';
import { egressRows } from '../egress-rows.ts';
import type { EventLine, ServiceRow } from './model.ts';
import { poolRows } from './model.ts';
import type { ViewListener } from './follow.ts';
import { egressText, eventText, poolText, serviceText } from './screen.ts';
import { plain } from './text.ts';

/** The live view for files and pipes: one line for every change of a row, and one for each Event. */
export class PlainLines implements ViewListener {
  readonly #output: Writable;
  /** The line that was last printed for an object. */
  readonly #printed = new Map<ObjectKey, string>();
  #begun = false;

  constructor(output: Writable) {
    this.#output = output;
  }

  /** Called when the first lists are read: their Events are old and not printed. */
  begin(services: readonly ServiceRow[]): void {
    this.#begun = true;
    for (const row of services) this.service(row);
  }

  service(row: ServiceRow): void {
    if (this.#begun) this.#print(`${row.namespace}/${row.name}`, serviceText(row));
  }

  gone(key: ObjectKey): void {
    if (this.#printed.delete(key)) this.#write(`${plain(key)}  deleted`);
  }

  pool(pool: KubeObject): void {
    for (const row of poolRows(pool)) this.#print(`pool ${keyOf(pool)} ${row.family}`, poolText(row));
  }

  egress(object: EgressIP): void {
    for (const row of egressRows(object))
      this.#print(`egress ${row.egressIP} ${row.address}`, egressText(row));
  }

  event(line: EventLine): void {
    if (this.#begun) this.#write(eventText(line));
  }

  changed(): void {
    // Every change has a line of its own.
  }

  #print(key: string, text: string): void {
    if (this.#printed.get(key) === text) return;
    this.#printed.set(key, text);
    this.#write(text);
  }

  #write(text: string): void {
    this.#output.write(`${text}\n`);
  }
}
