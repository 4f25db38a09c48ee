import { joinHostPort } from '../../objects/address.ts';
import { at, isRecord, listAt, numberAt, textAt, textsAt } from '../../objects/json.ts';
import { deciderAdvice, type FlowPlace, parseDecider, parsePlace } from '../../objects/flows/places.ts';
import { type Outcome, outcomes } from '../../objects/flows/outcomes.ts';
import { isWorkload, shortNames, type WorkloadKind } from '../../objects/references.ts';
import type { Protocol } from '../forwarding/forwarding-plan.ts';

/** Whose an end of a flow is. */
export interface FlowEnd {
  /** `address`: it is in the ranges of Pods or Services, and nobody has it by now. */
  readonly kind: 'Pod' | 'Node' | 'control-plane' | 'outside' | 'address';
  readonly namespace?: string;
  /** Of the Pod or Node. */
  readonly name?: string;
  /** What made the Pod. */
  readonly workload?: { readonly kind: WorkloadKind; readonly name: string };
  readonly address: string;
  readonly port?: number;
}

/** The Service that a connection was opened to. */
export interface FlowService {
  readonly namespace: string;
  readonly name: string;
  readonly port: number;
  /** That it was opened to. */
  readonly address: string;
}

/** The object that decided, as `trace` says it. */
export interface FlowDecision {
  /** `NetworkPolicy shop/deny-all`; absent: none is known. */
  readonly object?: string;
  /** `spec.ingress[0].from[1]` */
  readonly field?: string;
  readonly message: string;
}

/** One connection; or packets of one source that were denied at one port; or a name that does not exist; or a request. */
export interface Flow {
  /** Of this flow alone. One that is said again replaces what was said before: an answer came, or more packets. */
  readonly id: number;
  /** When it began; of denied packets, when the last one came (RFC 3339). */
  readonly time: string;
  /** The node that saw it. */
  readonly node?: string;
  readonly from: FlowEnd;
  /** Of a connection: the port that it comes from. */
  readonly sourcePort?: number;
  readonly service?: FlowService;
  /** Where it was led to. */
  readonly to?: FlowEnd;
  readonly protocol: Protocol;
  readonly outcome: Outcome;
  /** How many were denied; a client repeats the first one of a connection that is dropped. */
  readonly packets?: number;
  readonly decidedBy?: FlowDecision;
  readonly dns?: { readonly name: string };
  /** Of a request that the router refused. */
  readonly http?: {
    readonly method: string;
    readonly host: string;
    readonly path: string;
    readonly status: number;
    readonly reason: string;
  };
  /** The cluster's own traffic: probes, the API server's, questions to its DNS that were answered. */
  readonly own?: true;
}

/** Flows that have come. */
export interface FlowNews {
  readonly flows: readonly Flow[];
  /** Flows that were lost since the viewer connected. */
  readonly lost: number;
}

/** An end in the words that `trace` and filters take: `pod/shop/cart-1`, `node/node-1`, `outside`. */
export function endText({ kind, namespace = '', name = '', address }: FlowEnd): string {
  switch (kind) {
    case 'Pod':
      return `pod/${namespace}/${name}`;
    case 'Node':
      return `node/${name}`;
    case 'outside':
    case 'control-plane':
      return kind;
    case 'address':
      return address;
  }
}

/** The same, by what made the Pod: `deploy/shop/cart`. */
export function workloadText(end: FlowEnd): string {
  const { workload, namespace = '' } = end;
  return workload === undefined ? endText(end) : `${shortNames[workload.kind]}/${namespace}/${workload.name}`;
}

/** `svc/shop/catalog:80`; of a question to DNS, `dns/NAME`; empty: it was opened to no Service. */
export function serviceText({ service, dns }: Flow): string {
  if (dns !== undefined) return `dns/${dns.name}`;
  return service === undefined ? '' : `svc/${service.namespace}/${service.name}:${service.port}`;
}

/** Where it was led to: `pod/shop/catalog-1`; an address outside; empty: that is not known. */
function destinationText({ to }: Pick<Flow, 'to'>): string {
  if (to === undefined) return '';
  return to.kind === 'outside' ? to.address : endText(to);
}

/** `dropped`; of a request, `refused 404`. */
function outcomeText({ outcome, http }: Pick<Flow, 'outcome' | 'http'>): string {
  return http === undefined ? outcome : `${outcome} ${http.status}`;
}

/** `NetworkPolicy shop/deny-in spec.ingress: no rule matches`; empty: none is known. */
function decisionText({ decidedBy }: Pick<Flow, 'decidedBy'>): string {
  const by = [decidedBy?.object, decidedBy?.field].filter((each) => each !== undefined).join(' ');
  return [by, decidedBy?.message].filter((each) => each !== undefined && each !== '').join(': ');
}

/** A question to `servicenet trace` and to the page's Way. */
export interface AskedWay {
  readonly from: string;
  readonly to: string;
  readonly protocol: Protocol;
}

/** The way that such a connection takes; undefined where an end of it is none that can be traced. */
function wayOf(flow: Flow, nameOf: (end: FlowEnd) => string): AskedWay | undefined {
  const { from, to, service, protocol, http, dns } = flow;
  // Nothing is traced from the control plane: it is no part of the cluster network.
  if (from.kind === 'control-plane') return undefined;
  const way = { from: nameOf(from), protocol };
  if (http !== undefined) {
    const scheme = service?.port === 443 ? 'https' : 'http';
    return { ...way, to: `${scheme}://${http.host}${http.path}` };
  }
  if (dns !== undefined) return { ...way, to: `${dns.name}:80`, protocol: 'TCP' };
  if (service !== undefined) return { ...way, to: serviceText(flow) };
  if (to?.port === undefined) return undefined;
  const isObject = to.kind === 'Pod' || to.kind === 'Node';
  return { ...way, to: isObject ? `${endText(to)}:${to.port}` : joinHostPort(to.address, to.port) };
}

/** A flow, or several that are alike, in the words of `servicenet flows`. */
export interface FlowWords {
  /** When the last one began, or its last packet was denied (RFC 3339). */
  readonly time: string;
  /** `deploy/shop/cart`. */
  readonly from: string;
  /** `svc/shop/catalog:80`, `dns/NAME`; empty: none. */
  readonly service: string;
  /** `pod/shop/catalog-1`; empty: not known. */
  readonly to: string;
  readonly protocol: Protocol;
  readonly outcome: Outcome;
  /** With the status of a request: `refused 404`. */
  readonly outcomeText: string;
  /** The object, field and sentence; empty: none is known. */
  readonly decidedBy: string;
  /** Absent: it cannot be traced. */
  readonly way?: AskedWay;
}

/** @param nameOf names its source: {@link endText}, or {@link workloadText}. */
export function flowWords(flow: Flow, nameOf: (end: FlowEnd) => string): FlowWords {
  const { time, from, protocol, outcome } = flow;
  const way = wayOf(flow, nameOf);
  return {
    ...{ time, from: nameOf(from), service: serviceText(flow), to: destinationText(flow) },
    ...{ protocol, outcome, outcomeText: outcomeText(flow), decidedBy: decisionText(flow) },
    ...(way === undefined ? {} : { way }),
  };
}

/** The rows and columns of `trace --matrix` that a connection is of: by its workloads, and by their namespaces. */
export interface FlowCells {
  /** `deployment/shop/cart`, `namespace/shop`; `nodes`; `outside`. */
  readonly from: readonly string[];
  /** `deployment/shop/catalog:8080`, `namespace/shop`; `outside:443`. */
  readonly to: readonly string[];
}

/** Undefined where it is not known whom the connection was led to. */
export function cellsOf({ from, to }: Flow): FlowCells | undefined {
  const [destination, ...wider] = to === undefined ? [] : reachNames(to);
  const sources = reachNames(from);
  if (sources.length === 0 || destination === undefined || to?.port === undefined) return undefined;
  return { from: sources, to: [`${destination}:${to.port}`, ...wider] };
}

function reachNames({ kind, namespace = '', name = '', workload }: FlowEnd): readonly string[] {
  switch (kind) {
    case 'Pod': {
      const [made, of] =
        workload === undefined ? ['pod', name] : [workload.kind.toLowerCase(), workload.name];
      return [`${made}/${namespace}/${of}`, `namespace/${namespace}`];
    }
    case 'Node':
      return ['nodes'];
    case 'outside':
      return ['outside'];
    case 'control-plane':
    case 'address':
      return [];
  }
}

/** What a viewer of flows reads, line by line. */
export interface FlowLine extends FlowNews {
  /** These were known when it came. */
  readonly known: boolean;
  /** Some nodes of a cluster are not heard. */
  readonly isPart?: boolean;
}

/** Reads a line of the stream of flows. @throws {Error} with its `error`: there can be no flows. */
export function readFlowLine(line: unknown): FlowLine {
  const error = textAt(line, 'error');
  if (error !== '') throw new Error(error);
  const known = isRecord(line) && 'known' in line;
  return {
    known,
    flows: listAt(line, known ? 'known' : 'flows').filter(isFlow),
    lost: numberAt(line, 'lost'),
  };
}

/** Who tells it may be of another version. */
export function isFlow(value: unknown): value is Flow {
  return textAt(value, 'outcome') !== '' && textAt(value, 'from', 'kind') !== '';
}

/** The message of `FlowsSampled`. */
export function sampledText(lost: number): string {
  return `${lost} flows are not shown: more came than are told. Packets that were denied are all counted.`;
}

/** The namespaces of the ends of a flow and of its Service, each once. */
export function namespacesOf({ from, to, service }: Flow): readonly string[] {
  const all = [from.namespace, to?.namespace, service?.namespace];
  return [...new Set(all.filter((each) => each !== undefined))];
}

/** Which flows are asked for; what is undefined asks for nothing. */
export interface FlowFilter {
  /** Either end, or the Service. */
  readonly namespace: string | undefined;
  readonly from: FlowPlace | undefined;
  readonly to: FlowPlace | undefined;
  readonly outcomes: readonly Outcome[] | undefined;
  /** The object that decided: `NetworkPolicy shop/deny-all`. */
  readonly by: string | undefined;
  /** Whether those of the cluster itself, too. */
  readonly all: boolean;
}

/** Reads a filter as commands have it: by the words of places, outcomes and deciding objects. @throws {Error} for one that is none. */
export function readFlowFilter(request: unknown): FlowFilter {
  const namespace = textAt(request, 'namespace');
  const ownNamespace = namespace === '' ? 'default' : namespace;
  const place = (member: 'from' | 'to') => {
    const text = textAt(request, member);
    if (text === '') return undefined;
    const found = parsePlace(text, ownNamespace);
    if (found === undefined) throw new Error(`"${text}" is no place of a cluster`);
    return found;
  };
  const wanted = textsAt(request, 'outcomes');
  const decider = textAt(request, 'by');
  const by = decider === '' ? undefined : parseDecider(decider, ownNamespace);
  if (decider !== '' && by === undefined)
    throw new Error(`"${decider}" is no object that decides about flows: ${deciderAdvice}`);
  return {
    namespace: namespace === '' ? undefined : namespace,
    ...{ from: place('from'), to: place('to') },
    outcomes: wanted.length === 0 ? undefined : outcomes.filter((each) => wanted.includes(each)),
    by,
    all: at(request, 'all') === true,
  };
}

/** Whether a flow is one that is asked for. */
export function matchesFlow(flow: Flow, filter: FlowFilter): boolean {
  if (flow.own === true && !filter.all) return false;
  if (filter.outcomes !== undefined && !filter.outcomes.includes(flow.outcome)) return false;
  if (filter.by !== undefined && flow.decidedBy?.object !== filter.by) return false;
  const { namespace, from, to } = filter;
  if (namespace !== undefined && !namespacesOf(flow).includes(namespace)) return false;
  if (from !== undefined && !isEnd(flow.from, from)) return false;
  return to === undefined || leadsTo(flow, to);
}

function leadsTo({ service, to, dns }: Flow, place: FlowPlace): boolean {
  if (place.kind === 'dns') return dns?.name === place.name;
  if (place.kind === 'Service') {
    if (service?.namespace !== place.namespace || service.name !== place.name) return false;
    return place.port === undefined || place.port === service.port;
  }
  if (place.kind === 'address' && service?.address === place.address) {
    return place.port === undefined || place.port === service.port;
  }
  return to !== undefined && isEnd(to, place);
}

function isEnd(end: FlowEnd, place: FlowPlace): boolean {
  if (place.kind === 'dns') return false;
  if (place.port !== undefined && place.port !== end.port) return false;
  switch (place.kind) {
    case 'outside':
    case 'control-plane':
      return end.kind === place.kind;
    case 'address':
      return end.address === place.address;
    case 'Service':
      return false;
    case 'Node':
      return end.kind === 'Node' && end.name === place.name;
    default: {
      if (end.kind !== 'Pod' || end.namespace !== place.namespace) return false;
      if (!isWorkload(place.kind)) return end.name === place.name;
      return end.workload?.kind === place.kind && end.workload.name === place.name;
    }
  }
}
