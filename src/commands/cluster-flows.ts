import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { isAborted, systemClock } from '../client/clock.ts';
import { clientIdentity, createTransport } from '../client/connect.ts';
import { ResourceClient } from '../client/resource-client.ts';
import { configMaps } from '../client/resources.ts';
import type { ClusterSource, Transport } from '../client/transport.ts';
import type { FlowsConfig } from '../flags/flows.ts';
import type { ClusterConfig } from '../flags/shared.ts';
import {
  type AgentAddress,
  agentLabels,
  agentServerName,
  flowsAudience,
  flowsPath,
  readAgent,
  FlowMerge,
} from '../network/flows/agents.ts';
import { type Flow, type FlowLine, isFlow, matchesFlow, readFlowFilter } from '../network/flows/flow.ts';
import { joinHostPort } from '../objects/address.ts';
import { isRecord, listAt, numberAt, textAt } from '../objects/json.ts';
import { pushAll } from '../objects/lists.ts';
import { plain } from '../objects/plain.ts';
import { errorMessage } from '../objects/status.ts';
import { clusterSource } from './connect.ts';

/** Milliseconds within which an agent must answer. */
const answerMs = 5000;
/** An agent writes every ten seconds at least. */
const silentMs = 30_000;
const retryMs = 5000;
/** Of a token for a service account. */
const tokenSeconds = 3600;
/** Bytes of a line, and of an answer that says why there are none. */
const maxLine = 64 * 1024 * 1024;
const maxReason = 1000;

/** Flows of the agents of a cluster, as one list. @throws {Error} where none of them answers. */
export async function* clusterFlows(
  cluster: ClusterConfig,
  config: FlowsConfig,
  signal: AbortSignal,
): AsyncGenerator<FlowLine> {
  const source = await clusterSource(cluster);
  const transport = await createTransport(source);
  const ending = new AbortController();
  const ended = AbortSignal.any([signal, ending.signal]);
  try {
    const agents = await findAgents(transport, config.agentsNamespace, ended);
    const token = await tokensOf(source, transport, config.serviceAccount, ended);
    const streams = new AgentStreams(config, token, ended);
    yield* streams.lines(agents);
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    ending.abort();
    await transport.close();
  }
}

/** @throws {Error} where there is none. */
async function findAgents(
  transport: Transport,
  namespace: string,
  signal: AbortSignal,
): Promise<readonly AgentAddress[]> {
  const labelSelector = Object.entries(agentLabels)
    .map(([name, value]) => `${name}=${value}`)
    .join(',');
  const agents: AgentAddress[] = [];
  const client = new ResourceClient(transport, configMaps);
  for await (const { items } of client.pages({ namespace, labelSelector, signal }))
    pushAll(
      agents,
      items.flatMap((item) => readAgent(item) ?? []),
    );
  if (agents.length > 0) return agents;
  throw new Error(
    `no agent of ${transport.server} tells flows: there is no ConfigMap with the label ${labelSelector} in the namespace ${namespace}. Run servicenet node with --flows-bind-address, or name their namespace with --agents-namespace`,
  );
}

/** How a token for agents is had. @throws {Error} where the source has none. */
async function tokensOf(
  source: ClusterSource,
  transport: Transport,
  serviceAccount: FlowsConfig['serviceAccount'],
  signal: AbortSignal,
): Promise<() => Promise<string>> {
  if (serviceAccount !== undefined) {
    const { namespace, name } = serviceAccount;
    const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`;
    let known = { token: '', untilMs: 0 };
    return async () => {
      if (Date.now() < known.untilMs) return known.token;
      // Its audience lets it read flows and nothing else.
      const spec = { audiences: [flowsAudience], expirationSeconds: tokenSeconds };
      const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec };
      const answer = (await transport.request('POST', path, { body, signal })).json();
      known = { token: textAt(answer, 'status', 'token'), untilMs: Date.now() + (tokenSeconds * 1000) / 2 };
      return known.token;
    };
  }
  const identity = await clientIdentity(source);
  const read = async (): Promise<string> => {
    const { headers } = await identity.credentials();
    if (Object.keys(headers).some((name) => name.startsWith('impersonate-')))
      throw new Error(`agents of nodes do not impersonate: ${serviceAccountAdvice}`);
    const [, token] = /^Bearer (\S+)$/.exec(String(headers['authorization'] ?? '')) ?? [];
    if (token !== undefined) return token;
    throw new Error(
      `agents of nodes ask for a bearer token, and these credentials have none (a client certificate says nothing to them): ${serviceAccountAdvice}`,
    );
  };
  await read();
  return read;
}

const serviceAccountAdvice =
  'name a service account that may get /flows with --service-account NAMESPACE/NAME, for which a token is asked';

/** What is read of an agent. */
interface Following {
  readonly agent: AgentAddress;
  state: 'waiting' | 'answers' | 'silent';
  /** Why it is silent. */
  reason: string;
  /** Of its streams that have ended, and of that which has not. */
  lostBefore: number;
  lost: number;
}

/** The streams of all agents. */
class AgentStreams {
  readonly #config: FlowsConfig;
  readonly #token: () => Promise<string>;
  readonly #signal: AbortSignal;
  readonly #filter: ReturnType<typeof readFlowFilter>;
  readonly #merge = new FlowMerge();
  readonly #following: Following[] = [];
  #streams = 0;
  /** No agent is read any more. */
  #isOver = false;
  #news: Flow[] = [];
  #changed = Promise.withResolvers<undefined>();

  constructor(config: FlowsConfig, token: () => Promise<string>, signal: AbortSignal) {
    this.#config = config;
    this.#token = token;
    this.#signal = signal;
    this.#filter = readFlowFilter(config);
  }

  async *lines(agents: readonly AgentAddress[]): AsyncGenerator<FlowLine> {
    for (const agent of agents)
      this.#following.push({ agent, state: 'waiting', reason: '', lostBefore: 0, lost: 0 });
    void Promise.all(this.#following.map((each) => this.#follow(each))).then(() => {
      this.#isOver = true;
      this.#changed.resolve(undefined);
    });
    await this.#firstAnswers();
    const known = this.#take().toSorted((a, b) => (a.time < b.time ? -1 : 1));
    const { last, expect, groups } = this.#config;
    const most = expect === undefined && !groups ? last : known.length;
    yield this.#line(true, known.slice(Math.max(0, known.length - most)));
    while (!this.#isOver) {
      await this.#changed.promise;
      this.#changed = Promise.withResolvers<undefined>();
      yield this.#line(false, this.#take());
    }
  }

  /** @throws {Error} where no agent answers. */
  async #firstAnswers(): Promise<void> {
    const late = Date.now() + answerMs;
    while (this.#following.some(({ state }) => state === 'waiting') && Date.now() < late) {
      const waiting = new AbortController();
      const pause = systemClock.sleep(late - Date.now(), AbortSignal.any([waiting.signal, this.#signal]));
      await Promise.race([this.#changed.promise, pause]);
      waiting.abort();
      this.#signal.throwIfAborted();
      this.#changed = Promise.withResolvers<undefined>();
    }
    for (const each of this.#following) {
      if (each.state === 'waiting') this.#isSilent(each, `no answer within ${answerMs / 1000} s`);
    }
    if (this.#following.some(({ state }) => state === 'answers')) return;
    throw new Error('none of the agents of nodes answers');
  }

  #line(known: boolean, flows: readonly Flow[]): FlowLine {
    const lost = this.#following.reduce((sum, each) => sum + each.lostBefore + each.lost, 0);
    const isPart = this.#following.some(({ state }) => state !== 'answers');
    return { known, flows, lost, isPart };
  }

  #take(): readonly Flow[] {
    const news = this.#news;
    this.#news = [];
    // What was said of one flow in between is of no interest.
    return [...new Map(news.map((flow) => [flow.id, flow])).values()];
  }

  /** Reads an agent's flows; with --follow, again and again. */
  async #follow(each: Following): Promise<void> {
    while (!isAborted(this.#signal)) {
      const stream = `${each.agent.node} ${++this.#streams}`;
      let reason = 'its answer has ended';
      try {
        for await (const line of readAgentLines(
          each.agent,
          this.#query(),
          await this.#token(),
          this.#signal,
        )) {
          const error = textAt(line, 'error');
          if (error !== '') throw new Error(error);
          this.#heard(each);
          each.lost = Math.max(each.lost, numberAt(line, 'lost'));
          const flows = [...listAt(line, 'known'), ...listAt(line, 'flows')].filter(isFlow);
          for (const flow of this.#merge.take(stream, flows))
            if (matchesFlow(flow, this.#filter)) this.#news.push(flow);
          this.#changed.resolve(undefined);
        }
      } catch (error) {
        reason = errorMessage(error);
      }
      if (isAborted(this.#signal)) return;
      each.lostBefore += each.lost;
      each.lost = 0;
      this.#isSilent(each, reason);
      this.#changed.resolve(undefined);
      if (!this.#config.follow) return;
      await systemClock.sleep(retryMs, this.#signal);
    }
  }

  #query(): string {
    const { namespace, all, last, from, to, outcomes, by, groups } = this.#config;
    // Agents know of namespaces alone: the last ones that are asked for are among all of them.
    const isAll = groups || [from, to, outcomes, by].some((each) => each !== undefined);
    const query = new URLSearchParams({ last: String(isAll ? 10_000 : last) });
    if (namespace !== undefined) query.set('namespace', namespace);
    if (all) query.set('all', 'true');
    return query.toString();
  }

  #heard(each: Following): void {
    if (each.state === 'silent') say(`AgentAnswers: node ${each.agent.node}: its flows come again`);
    each.state = 'answers';
  }

  #isSilent(each: Following, reason: string): void {
    const { node, addresses, port } = each.agent;
    const at = joinHostPort(addresses[0] ?? '', port);
    if (each.state !== 'silent' || each.reason !== reason)
      say(`AgentSilent: node ${node} (${at}): its flows are missing: ${reason}`);
    each.state = 'silent';
    each.reason = reason;
  }
}

function say(text: string): void {
  process.stderr.write(`servicenet: ${plain(text)}\n`);
}

/** The lines of an agent as JSON, by the first of its addresses that answers. @throws {Error} where none does. */
async function* readAgentLines(
  agent: AgentAddress,
  query: string,
  token: string,
  signal: AbortSignal,
): AsyncGenerator {
  const response = await answerOf(agent, query, token, signal);
  response.socket.setTimeout(silentMs, () =>
    response.destroy(new Error(`nothing came for ${silentMs / 1000} s`)),
  );
  let rest: Buffer[] = [];
  let bytes = 0;
  const chunks: AsyncIterable<unknown> = response;
  for await (const chunk of chunks) {
    if (!Buffer.isBuffer(chunk)) continue;
    let from = 0;
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, from)) {
      const line: unknown = JSON.parse(Buffer.concat([...rest, chunk.subarray(from, end)]).toString());
      [rest, bytes, from] = [[], 0, end + 1];
      if (isRecord(line)) yield line;
    }
    rest.push(chunk.subarray(from));
    bytes += chunk.length - from;
    if (bytes > maxLine) throw new Error('it sends a line without an end');
  }
}

async function answerOf(
  agent: AgentAddress,
  query: string,
  token: string,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const failures: string[] = [];
  for (const address of agent.addresses) {
    try {
      const response = await ask(agent, address, query, token, signal);
      if (response.statusCode === 200) return response;
      const reason = await beginningOf(response);
      failures.push(`${response.statusCode} ${reason}`);
      // It is the same agent at each of its addresses.
      break;
    } catch (error) {
      signal.throwIfAborted();
      failures.push(errorMessage(error));
    }
  }
  throw new Error(failures.join('; '));
}

function ask(
  { port, authority }: AgentAddress,
  address: string,
  query: string,
  token: string,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const sent = request({
      ...{ host: address, port, path: `${flowsPath}?${query}`, agent: false, signal },
      // The authority signs the certificate of this agent alone, so that no other server gets the token.
      ...{ ca: authority, servername: agentServerName, minVersion: 'TLSv1.2' },
      headers: { authorization: `Bearer ${token}`, accept: 'application/x-ndjson' },
    });
    const late = setTimeout(() => sent.destroy(new Error(`no answer within ${answerMs / 1000} s`)), answerMs);
    sent.on('response', (response) => {
      clearTimeout(late);
      // Reading it reports its errors; one that comes earlier is reported then.
      response.on('error', () => undefined);
      resolve(response);
    });
    sent.on('error', (error) => {
      clearTimeout(late);
      reject(error);
    });
    sent.end();
  });
}

async function beginningOf(response: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of response) {
    text += String(chunk);
    if (text.length > maxReason) break;
  }
  return text.slice(0, maxReason).trim();
}
