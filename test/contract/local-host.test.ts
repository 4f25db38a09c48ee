import { localHost } from '../../src/host/local-host.ts';
import { describeHost } from './host.contract.ts';

describeHost('the machine itself', () =>
  Promise.resolve({ host: localHost, close: () => Promise.resolve() }),
);
