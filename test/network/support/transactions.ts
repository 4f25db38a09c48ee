import type { ExecOptions, Host } from '../../../src/host/host.ts';

/** The host, which tells of every transaction that it is given for nft before nft gets it. */
export function tellingTransactions(host: Host, tell: () => void): Host {
  const told = async function* (input: NonNullable<ExecOptions['input']>): AsyncGenerator<string> {
    for await (const piece of typeof input === 'string' ? [input] : input) {
      tell();
      yield piece;
    }
  };
  const exec: Host['exec'] = (program, args, options = {}) => {
    const { input } = options;
    return host.exec(program, args, input === undefined ? options : { ...options, input: told(input) });
  };
  return { ...host, exec };
}
