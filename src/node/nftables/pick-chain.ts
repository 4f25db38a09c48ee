import type { TrafficPolicy } from '../../network/forwarding/forwarding-plan.ts';
import {
  addChain,
  addRule,
  assign,
  type Command,
  concat,
  type NftExpression,
  field,
  jump,
  match,
} from './commands.ts';
import { type LayoutOptions, nodePortKey, podSource, serviceIPKey } from './layout.ts';
import { masqueradeBit } from './marks.ts';
import type { SetName } from './sets.ts';

/**
 * A chain that leads to one of a number of endpoints. It names no Service: there is one for each number, and a Service
 * port whose number changes goes to another chain. Such chains are made when they are first needed and never deleted.
 */
export interface PickChain {
  /** By what the destination is known. */
  readonly by: DestinationKey;
  readonly to: TrafficPolicy;
  readonly masquerade: MasqueradedSources;
  /** The number of endpoints, at least 1. */
  readonly endpoints: number;
  /** Seconds; undefined: without session affinity. */
  readonly affinitySeconds: number | undefined;
}

export type DestinationKey = 'service-ips' | 'node-ports';

/** The sources that are masqueraded with the node's address. */
export type MasqueradedSources = 'none' | 'all' | 'all-but-pods';

export function pickChainName({ by, to, masquerade, endpoints, affinitySeconds }: PickChain): string {
  const name = ['pick', endpointList(by, to), String(endpoints)];
  if (masquerade !== 'none') name.push('masquerade', masquerade);
  if (affinitySeconds !== undefined) name.push('affinity', String(affinitySeconds));
  return name.join('-');
}

/** The map with the endpoints that such chains lead to. */
export function endpointsMap(by: DestinationKey, to: TrafficPolicy): SetName {
  return `${endpointList(by, to)}-endpoints`;
}

/** The map with the marks of endpoints, for session affinity. */
export function endpointMarksMap(by: DestinationKey, to: TrafficPolicy): SetName {
  return `${endpointList(by, to)}-endpoint-marks`;
}

function endpointList(by: DestinationKey, to: TrafficPolicy): EndpointList {
  const list = to === 'Cluster' ? 'cluster' : 'local';
  return by === 'service-ips' ? list : `node-port-${list}`;
}

type EndpointList = 'cluster' | 'local' | 'node-port-cluster' | 'node-port-local';

/** A chain by its name, and its rules. */
export interface ChainDefinition {
  readonly name: string;
  readonly commands: readonly Command[];
}

/** The chain, after those that it needs. */
export function pickChainDefinitions(chain: PickChain, options: LayoutOptions): readonly ChainDefinition[] {
  const { family } = options;
  const { by, to, endpoints, affinitySeconds } = chain;
  const draw = assign(field.connectionMark, { numgen: { mode: 'random', mod: endpoints } });
  const translate = {
    dnat: {
      family,
      addr: { map: { key: markedDestination(chain, options), data: `@${endpointsMap(by, to)}` } },
    },
  };
  const before = masqueradeRules(chain.masquerade, options);
  if (affinitySeconds === undefined) {
    return [define(options, pickChainName(chain), [...before, [draw, translate]])];
  }
  const find = findChainDefinition(chain, options);
  const keep = {
    set: {
      op: 'update',
      elem: { elem: { val: clientAndMark(options), timeout: affinitySeconds } },
      set: '@affinity',
    },
  };
  const pick = define(options, pickChainName(chain), [
    ...before,
    [jump(find.name)],
    [match(field.connectionMark, 0), draw, markOfSlot(chain, options)],
    [keep],
    [translate],
  ]);
  return [find, pick];
}

/**
 * Sets the connection mark to that of the first endpoint that the client keeps; 0: none. As kube-proxy, it asks for one
 * endpoint after the other. Chains exist for powers of two: slots that a Service port does not have match nothing.
 */
function findChainDefinition(chain: PickChain, options: LayoutOptions): ChainDefinition {
  let slots = 1;
  while (slots < chain.endpoints) slots *= 2;
  const rules = [];
  for (let slot = 0; slot < slots; slot++) {
    rules.push([
      assign(field.connectionMark, slot),
      markOfSlot(chain, options),
      match(clientAndMark(options), '@affinity'),
      { return: null },
    ]);
  }
  rules.push([assign(field.connectionMark, 0)]);
  return define(options, `find-${endpointList(chain.by, chain.to)}-${slots}`, rules);
}

function masqueradeRules(
  masquerade: MasqueradedSources,
  options: LayoutOptions,
): readonly (readonly NftExpression[])[] {
  const mark = assign(field.packetMark, { '|': [field.packetMark, masqueradeBit(options.markMask)] });
  if (masquerade === 'none') return [];
  const sources = masquerade === 'all-but-pods' ? podSource(options, '!=') : undefined;
  return [sources === undefined ? [mark] : [sources, mark]];
}

/** Replaces the slot in the connection mark by the mark of its endpoint. */
function markOfSlot(chain: PickChain, options: LayoutOptions): NftExpression {
  const data = `@${endpointMarksMap(chain.by, chain.to)}`;
  return assign(field.connectionMark, { map: { key: markedDestination(chain, options), data } });
}

function markedDestination({ by }: PickChain, { family }: LayoutOptions): NftExpression {
  return concat(...(by === 'service-ips' ? serviceIPKey(family) : nodePortKey), field.connectionMark);
}

function clientAndMark({ family }: LayoutOptions): NftExpression {
  return concat(field.sourceAddress(family), field.connectionMark);
}

function define(
  { family }: LayoutOptions,
  name: string,
  rules: readonly (readonly NftExpression[])[],
): ChainDefinition {
  return { name, commands: [addChain(family, name), ...rules.map((rule) => addRule(family, name, ...rule))] };
}
