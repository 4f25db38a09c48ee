import type { Clock, Timer } from '../client/clock.ts';
import { endText, type Flow, flowWords, readFlowLine, sampledText } from '../network/flows/flow.ts';
import { FlowGrouping } from '../network/flows/groups.ts';
import { errorMessage } from '../objects/status.ts';
import type { FlowGroupRow, FlowRow, FlowWatchRow } from '../view/rows/rows.ts';
import type { Trouble } from '../view/rows/trouble.ts';
import type { Follow } from './messages.ts';

/** Asks for flows as `servicenet flows -f` does. @returns the lines that come. */
export type AskFlows = (request: object, signal: AbortSignal) => AsyncIterable<unknown>;

/** What there is to see: groups, or each. */
export interface PresentFlows {
  readonly watch: FlowWatchRow;
  readonly groups: readonly FlowGroupRow[];
  readonly flows: readonly FlowRow[];
}

/** Where flows have ended, as when the cluster network begins anew, they are asked for again after this time. */
const againMs = 5000;
/** Between two times that a tab is told. */
const tellMs = 1000;
/** Single flows that a tab gets, the newest. */
const mostFlows = 500;
/** Flows that are known, to begin with: all of them, as groups have a history. */
const mostKnown = 10_000;

/** The flows that a tab looks at, until it looks at something else: only then they are collected. */
export class FlowWatch {
  readonly #follow: Follow;
  readonly #clock: Clock;
  readonly #tell: (present: PresentFlows) => void;
  readonly #ended = new AbortController();
  #grouping = new FlowGrouping();
  /** The newest, the oldest first. */
  readonly #flows = new Map<number, Flow>();
  #state: FlowWatchRow['state'] = 'beginning';
  #whyEnded: string | undefined;
  #trouble: Trouble | undefined;
  #telling: Timer | undefined;
  #asking: Timer | undefined;

  /** @param ask undefined: there are no flows, and `why` says so. @param tell is given what there is, once a second. */
  constructor(
    follow: Follow,
    { ask, why }: { readonly ask: AskFlows | undefined; readonly why: string },
    clock: Clock,
    tell: (present: PresentFlows) => void,
  ) {
    this.#follow = follow;
    this.#clock = clock;
    this.#tell = tell;
    if (ask === undefined) this.#stop(why);
    else this.#begin(ask);
  }

  /** Nobody looks any more. */
  end(): void {
    this.#ended.abort();
    this.#telling?.cancel();
    this.#asking?.cancel();
  }

  #begin(ask: AskFlows): void {
    const again = (message: string): void => {
      if (this.#ended.signal.aborted) return;
      this.#stop(message);
      this.#asking = this.#clock.after(againMs, () => this.#begin(ask));
    };
    this.#read(ask).then(
      () => again('the cluster network has ended'),
      (error: unknown) => again(errorMessage(error)),
    );
  }

  async #read(ask: AskFlows): Promise<void> {
    const { namespace, flows: { from, to, outcomes, by, all } = {} } = this.#follow;
    const request = { namespace, from, to, outcomes, by, all, last: mostKnown };
    for await (const line of ask(request, this.#ended.signal)) {
      const { known, flows, lost } = readFlowLine(line);
      // Their numbers begin anew with each network.
      if (known) this.#forget();
      for (const flow of flows) this.#take(flow);
      if (lost > 0) this.#trouble = { reason: 'FlowsSampled', message: sampledText(lost) };
      if (this.#state === 'watching') continue;
      this.#state = 'watching';
      this.#whyEnded = undefined;
      this.#tellNow();
    }
  }

  #take(flow: Flow): void {
    if (this.#follow.flows?.each !== true) {
      this.#grouping.take(flow);
      return;
    }
    this.#flows.delete(flow.id);
    this.#flows.set(flow.id, flow);
    if (this.#flows.size <= mostKnown) return;
    for (const first of this.#flows.keys()) {
      this.#flows.delete(first);
      break;
    }
  }

  #present(): PresentFlows {
    const { groups, total: allGroups } = this.#grouping.groups(this.#clock.now());
    const newest = [...this.#flows.values()].slice(-mostFlows);
    const isEach = this.#follow.flows?.each === true;
    return {
      watch: {
        ...{ key: 'flows', state: this.#state, total: isEach ? this.#flows.size : allGroups },
        ...(this.#whyEnded === undefined ? {} : { whyEnded: this.#whyEnded }),
        ...(this.#trouble === undefined ? {} : { trouble: this.#trouble }),
      },
      groups,
      flows: newest.map((flow) => ({
        ...{ key: String(flow.id), ...flowWords(flow, endText) },
        ...(flow.packets === undefined ? {} : { packets: flow.packets }),
      })),
    };
  }

  #forget(): void {
    this.#grouping = new FlowGrouping();
    this.#flows.clear();
    this.#trouble = undefined;
  }

  #tellNow(): void {
    this.#telling?.cancel();
    if (this.#ended.signal.aborted) return;
    this.#tell(this.#present());
    this.#telling = this.#clock.after(tellMs, () => this.#tellNow());
  }

  #stop(message: string): void {
    this.#state = 'ended';
    this.#whyEnded = message;
    this.#tellNow();
  }
}
