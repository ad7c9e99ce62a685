package request

import (
	"encoding/hex"
	"encoding/json"
	"testing"
)

// A request lies where many can write: none is believed that was not signed with the key.
func FuzzRequest(f *testing.F) {
	key := []byte("0123456789abcdef0123456789abcdef")
	// The same in each of the fuzzer's processes: no nonce by chance.
	genuine := Request{Job: "job", Host: "host", Reason: "slow", Start: 1_700_000_000_000_000_000, Nonce: "00112233445566778899aabb"}
	genuine.Sign = hex.EncodeToString(genuine.mac(key))
	signed, err := json.Marshal(genuine)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(signed)
	f.Add([]byte("{}"))
	f.Add([]byte("[]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var r Request
		if json.Unmarshal(text, &r) != nil || r.Verify(key) != nil {
			return
		}
		if r.Sign = genuine.Sign; r != genuine { // hex digits have two cases
			t.Errorf("believed without the key: %+v", r)
		}
	})
}
