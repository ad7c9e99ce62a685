// The one door to the server. The token arrives in the fragment of the address, which browsers send to nobody, and stays
// in this tab's session storage; a further tab asks one that is open.

const channel = "BroadcastChannel" in globalThis ? new BroadcastChannel("ebpfprof") : null;
let token = sessionStorage.getItem("token") ?? "";

// takeToken moves the token out of the address and returns whether there is one.
export async function takeToken() {
  const parts = location.hash.slice(1).split("&");
  const given = parts.find((p) => p.startsWith("token="));
  if (given) {
    token = given.slice("token=".length);
    sessionStorage.setItem("token", token);
    const rest = parts.filter((p) => !p.startsWith("token=")).join("&");
    history.replaceState(null, "", rest ? `#${rest}` : location.pathname);
  }
  channel?.addEventListener("message", (event) => {
    if (event.data?.ask === "token" && token) channel.postMessage({ token });
  });
  if (!token && channel) {
    token = await new Promise((resolve) => {
      channel.addEventListener("message", (event) => event.data?.token && resolve(String(event.data.token)));
      channel.postMessage({ ask: "token" });
      setTimeout(() => resolve(""), 300);
    });
    if (token) sessionStorage.setItem("token", token);
  }
  return token !== "";
}

// Problem is an answer that is a sentence.
export class Problem extends Error {
  constructor(sentence, status) {
    super(sentence);
    this.status = status;
  }
}

let unreachable = false;

// onReach is called with false when the server does not answer, and with true when it does again.
export let onReach = () => {};
export function setOnReach(f) {
  onReach = f;
}

async function request(path, options = {}) {
  let response;
  try {
    response = await fetch(path, {
      ...options,
      headers: { Authorization: `Bearer ${token}`, ...options.headers },
      cache: "no-store",
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    if (!unreachable) onReach(false);
    unreachable = true;
    throw new Problem("The server does not answer. Is ebpfprof serve still running?", 0);
  }
  if (unreachable) onReach(true);
  unreachable = false;
  if (!response.ok) {
    const body = await response.json().catch(() => ({}));
    throw new Problem(body.error ?? `the server answered ${response.status}`, response.status);
  }
  return response;
}

// answer is the response itself, for who reads its headers.
export const answer = (path, options) => request(path, options);

export async function json(path, options) {
  return (await request(path, options)).json();
}

export async function bytes(path, options) {
  return (await request(path, options)).arrayBuffer();
}
