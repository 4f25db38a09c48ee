import type { Transport } from '../../src/client/transport.ts';
import { isRecord, type JsonRecord } from '../../src/objects/json.ts';
import type { Kubectl } from './kubectl.ts';

/** kubectl in one namespace. */
export interface NamespacedKubectl {
  readonly namespace: string;
  /** Answers standard output; fails the test when kubectl fails. */
  readonly run: (command: string, input?: string) => Promise<string>;
  /** The object or list as JSON. */
  readonly json: (command: string) => Promise<JsonRecord>;
}

/** Makes a namespace and runs kubectl in it. Single quotes keep blanks together. */
export async function kubectlIn(
  kubectl: Kubectl,
  client: Transport,
  namespace: string,
): Promise<NamespacedKubectl> {
  await client.request('POST', '/api/v1/namespaces', { body: { metadata: { name: namespace } } });
  const words = (command: string): string[] => [
    '-n',
    namespace,
    ...[...command.matchAll(/(?:'[^']*'|[^\s'])+/g)].map(([word]) => word.replaceAll("'", '')),
  ];
  return {
    namespace,
    run: async (command, input) => kubectl.ok(words(command), input),
    json: async (command) => {
      const found: unknown = JSON.parse(await kubectl.ok([...words(command), '-o', 'json']));
      return isRecord(found) ? found : {};
    },
  };
}
